a = <<"E"
x
E
