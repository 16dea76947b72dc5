a = <<E
x
E
b = 1
