a = true
b = false
c = null
d = "x"
