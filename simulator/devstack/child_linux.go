package devstack

import "syscall"

// dieWithParent makes the kernel send the child a signal when its parent dies, for any reason. The
// child must not change its user afterwards: that would clear the setting.
func dieWithParent(attr *syscall.SysProcAttr, s syscall.Signal) { attr.Pdeathsig = s }
