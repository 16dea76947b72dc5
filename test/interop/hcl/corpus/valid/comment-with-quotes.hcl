# "unclosed { [ (
a = 1 // ${ %{ <<E
/* " */ b = 2
