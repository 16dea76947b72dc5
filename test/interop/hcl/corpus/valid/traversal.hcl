a = b.c[0].d["e"].*.f
g = h[*].i
j = k.0.l
