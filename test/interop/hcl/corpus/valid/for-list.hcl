a = [for x in y : x if x != null]
b = [
  for k, v in c :
  v
]
