a {
}
a "x" {
}
a = 1
