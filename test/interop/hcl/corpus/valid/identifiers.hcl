a-b = 1
_c = 2
d1 = 3
for = 4
if = 5
null = 6
true = 7
