a = <<E
x ${<<F
y
F
} E
E
b = 1
