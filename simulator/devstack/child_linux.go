package devstack

import "syscall"

// dieWithParent has the kernel send the child a signal when its parent dies, however it dies. The
// child must not change its user afterwards: that would clear the request.
func dieWithParent(attr *syscall.SysProcAttr, s syscall.Signal) { attr.Pdeathsig = s }
