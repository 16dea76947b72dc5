a = "\Uffffffff"
