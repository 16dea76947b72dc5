a = "%{ if b }c"
