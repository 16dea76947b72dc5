a = [
  <<E
x
E
  , 1
]
b = 2
