a = <<E
E
b = 1
