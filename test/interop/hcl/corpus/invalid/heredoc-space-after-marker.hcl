a = <<E 
x
E
