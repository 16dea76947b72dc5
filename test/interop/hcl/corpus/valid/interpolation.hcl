a = "x${y}z"
b = "${y}"
