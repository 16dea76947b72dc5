a {
  b {
    c "l" {
      d = 1
    }
    e = 2
  }
  f = 3
}
