a { b = <<E
x
E
}
