a = 1 + 2 * 3 - -4 / 5 % 6
b = !c && d || e == f && g != h
i = j >= k || l <= m && n < o || p > q
