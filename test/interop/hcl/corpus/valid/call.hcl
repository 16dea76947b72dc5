a = f(1, [2], { b = 3 })
c = g(
  1,
  d...
)
e = env("HOME")
