package devstack

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"strconv"
	"syscall"
)

// account is the unprivileged user that runs the server if this process runs as root, since
// PostgreSQL refuses to. Nil is the user of this process.
type account struct {
	name     string
	uid, gid uint32
}

// serverAccounts lists the users that a server may run as, the best first; there is at least one.
func serverAccounts() ([]*account, error) {
	if os.Geteuid() != 0 {
		return []*account{nil}, nil
	}
	var accounts []*account
	for _, name := range []string{"postgres", "nobody"} {
		u, err := user.Lookup(name)
		if err != nil {
			continue
		}
		uid, errUID := strconv.ParseUint(u.Uid, 10, 32)
		gid, errGID := strconv.ParseUint(u.Gid, 10, 32)
		if err := errors.Join(errUID, errGID); err != nil {
			return nil, fmt.Errorf("user %s: %w", name, err)
		}
		accounts = append(accounts, &account{name, uint32(uid), uint32(gid)})
	}
	if len(accounts) == 0 {
		return nil, errors.New("postgres does not run as root, and this machine has neither a user postgres nor nobody")
	}
	return accounts, nil
}

// ownerOf returns the account that owns a private folder. It fails if that is none of
// serverAccounts: in /var/tmp any user may have made the folder, to read the data.
func ownerOf(path string) (*account, error) {
	accounts, err := serverAccounts()
	if err != nil {
		return nil, err
	}
	for _, a := range accounts {
		if a.owns(path) {
			return a, nil
		}
	}
	return nil, fmt.Errorf("%s is not a private folder of the server's user; remove it", path)
}

// attributes make a command run as the account.
func (a *account) attributes() *syscall.SysProcAttr {
	if a == nil {
		return &syscall.SysProcAttr{}
	}
	return &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: a.uid, Gid: a.gid}}
}

// mkdir makes a folder that is the account's alone. It must not exist.
func (a *account) mkdir(path string) error {
	if err := os.Mkdir(path, 0o700); err != nil {
		return err
	}
	return a.give(path)
}

func (a *account) give(path string) error {
	if a == nil {
		return nil
	}
	return os.Lchown(path, int(a.uid), int(a.gid))
}

// owns reports whether path is a real folder that belongs to the account and that no other user may
// enter.
func (a *account) owns(path string) bool {
	info, err := os.Lstat(path)
	if err != nil || !info.IsDir() || info.Mode().Perm()&0o077 != 0 {
		return false
	}
	uid := uint32(os.Geteuid())
	if a != nil {
		uid = a.uid
	}
	stat, ok := info.Sys().(*syscall.Stat_t)
	return ok && stat.Uid == uid
}

// reaches asks the kernel whether the account can use a folder, which depends on all its parents.
func (a *account) reaches(path string) bool {
	if a == nil {
		return true
	}
	probe := exec.Command("/bin/sh", "-c", `cd "$1" && test -w .`, "sh", path)
	probe.Dir = "/"
	probe.SysProcAttr = a.attributes()
	return probe.Run() == nil
}
