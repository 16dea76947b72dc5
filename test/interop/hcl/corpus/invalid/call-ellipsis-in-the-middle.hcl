a = f(b..., c)
