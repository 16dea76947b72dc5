a "x" y "z w" {
}
a x {
}
