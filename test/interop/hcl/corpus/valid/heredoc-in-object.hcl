a = {
  b = <<E
x
E
  c = 1
}
