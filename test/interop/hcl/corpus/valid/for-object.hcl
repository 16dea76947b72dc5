a = { for k, v in b : k => v... if v }
c = 1
