a = 'b'
