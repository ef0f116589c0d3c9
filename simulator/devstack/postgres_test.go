package devstack_test

import (
	"context"
	"database/sql"
	"errors"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"motorpool/internal/assert"
	"motorpool/internal/require"
	"motorpool/simulator/devstack"
)

// cleanPostgres removes at the end of the test the data that a Postgres of dir keeps elsewhere.
func cleanPostgres(t *testing.T, dir string) {
	t.Helper()
	outside := devstack.OutsideOf(dir)
	t.Cleanup(func() {
		assert.NoError(t, os.RemoveAll(outside))
	})
}

func startPostgres(t *testing.T, dir string) *devstack.Postgres {
	t.Helper()
	p, err := devstack.StartPostgres(context.Background(), devstack.PostgresConfig{Dir: dir})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, p.Close()) })
	return p
}

func execute(t *testing.T, address, statement string) error {
	t.Helper()
	db, err := sql.Open("postgres", address)
	require.NoError(t, err)
	defer db.Close()
	_, err = db.Exec(statement)
	return err
}

func mustExecute(t *testing.T, address, statement string) {
	t.Helper()
	require.NoError(t, execute(t, address, statement), "%s", statement)
}

func closeNow(t *testing.T, p *devstack.Postgres) {
	t.Helper()
	require.NoError(t, p.Close())
}

// folderInVar returns a folder that each user can reach, on the file system of /var/tmp: data are
// moved within one only.
func folderInVar(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("/var/tmp", "motorpool-test-")
	require.NoError(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	require.NoError(t, os.Chmod(dir, 0o755))
	return dir
}

func TestPostgres_UnderAPrivateFolderKeepsItsDataUntilThatIsRemoved(t *testing.T) {
	t.Parallel()
	devstack.NeedServer(t, devstack.PostgresServer)
	dir := filepath.Join(folderInVar(t), "private", "postgres")
	require.NoError(t, os.MkdirAll(filepath.Dir(dir), 0o700))
	cleanPostgres(t, dir)
	first := startPostgres(t, dir)
	mustExecute(t, first.URL(), `create table cars (id int)`)
	before := first.DataDir()
	closeNow(t, first)
	if _, err := os.Stat(devstack.OutsideOf(dir)); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("after the stop the data are still at %s (%v)", devstack.OutsideOf(dir), err)
	}

	second := startPostgres(t, dir)
	mustExecute(t, second.URL(), `insert into cars values (1)`)
	if before != second.DataDir() {
		t.Errorf("data moved from %s to %s", before, second.DataDir())
	}
	inside := strings.HasPrefix(second.DataDir(), dir)
	if root := os.Geteuid() == 0; root == inside {
		t.Errorf("the data are in %s; running as root: %v", second.DataDir(), root)
	}
	info, err := os.Stat(filepath.Dir(second.DataDir()))
	require.NoError(t, err)
	if info.Mode().Perm() != 0o700 {
		t.Errorf("%s has mode %v, want 0700", filepath.Dir(second.DataDir()), info.Mode())
	}
	if owner := info.Sys().(*syscall.Stat_t).Uid; owner == 0 {
		t.Error("the owner of the data is root")
	}

	closeNow(t, second)
	require.NoError(t, os.RemoveAll(dir))
	if _, err := os.Stat(devstack.OutsideOf(dir)); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the data of the removed folder are still at %s (%v)", devstack.OutsideOf(dir), err)
	}
	third := startPostgres(t, dir)
	if err := execute(t, third.URL(), `select * from cars`); err == nil {
		t.Error("the table of the removed folder still exists")
	}
	mustExecute(t, third.URL(), `create table cars (id int)`)
}

func TestPostgres_KeepsItsDataInAnAccessibleFolder(t *testing.T) {
	t.Parallel()
	devstack.NeedServer(t, devstack.PostgresServer)
	dir := filepath.Join(folderInVar(t), "postgres")
	p := startPostgres(t, dir)
	if !strings.HasPrefix(p.DataDir(), dir) {
		t.Errorf("the data are in %s, want them in %s", p.DataDir(), dir)
	}
	mustExecute(t, p.URL(), `create table cars (id int)`)
	closeNow(t, p)
	mustExecute(t, startPostgres(t, dir).URL(), `insert into cars values (1)`)

	info, err := os.Stat(filepath.Join(dir, "password"))
	require.NoError(t, err)
	if info.Mode().Perm() != 0o600 {
		t.Errorf("the password file has mode %v, want 0600", info.Mode())
	}
}

func TestPostgres_DiscardRemovesEverything(t *testing.T) {
	t.Parallel()
	devstack.NeedServer(t, devstack.PostgresServer)
	dir := t.TempDir()
	cleanPostgres(t, dir)
	first := startPostgres(t, dir)
	temporary, err := filepath.EvalSymlinks(os.TempDir())
	require.NoError(t, err)
	if !strings.HasPrefix(first.DataDir(), temporary) { // it may be in memory
		t.Errorf("the data of a temporary folder are in %s, want them in %s", first.DataDir(), temporary)
	}
	mustExecute(t, first.URL(), `create table cars (id int)`)
	require.NoError(t, first.Discard())
	if _, err := os.Stat(filepath.Dir(first.DataDir())); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("%s still exists (%v)", filepath.Dir(first.DataDir()), err)
	}
	mustExecute(t, startPostgres(t, dir).URL(), `create table cars (id int)`)
}

// One server after the other, of the same data.
func TestPostgres_OneServerOfAFolder(t *testing.T) {
	t.Parallel()
	devstack.NeedServer(t, devstack.PostgresServer)
	dir := t.TempDir()
	cleanPostgres(t, dir)
	p := startPostgres(t, dir)
	wrong, err := url.Parse(p.URL())
	require.NoError(t, err)
	wrong.User = url.UserPassword(wrong.User.Username(), "wrong")
	if err := ask(wrong.String(), patience); err == nil || !strings.Contains(err.Error(), "password") {
		t.Errorf("with a wrong password: %v, want an error about the password", err)
	}
	addresses, err := net.InterfaceAddrs()
	require.NoError(t, err)
	for _, a := range addresses {
		ip := a.(*net.IPNet).IP
		if ip.IsLoopback() || ip.IsLinkLocalUnicast() {
			continue
		}
		if listens(t, "tcp://"+net.JoinHostPort(ip.String(), wrong.Port())) {
			t.Errorf("Postgres listens on %s, want only loopback", ip)
		}
	}
	if _, err := devstack.StartPostgres(context.Background(), devstack.PostgresConfig{Dir: dir}); err == nil ||
		!strings.Contains(err.Error(), "in use") {
		t.Errorf("a second server: %v, want an error that the folder is in use", err)
	}

	mustExecute(t, p.URL(), `create table cars (id int)`)
	mustExecute(t, p.URL(), `insert into cars values (1)`)
	require.NoError(t, p.Kill())
	require.NoError(t, p.Restart())
	// The committed row is there.
	mustExecute(t, p.URL(), `insert into cars select 1 / count(*) from cars`)
	closeNow(t, p)

	bystander := takesThePIDOf(t, p)
	closeNow(t, startPostgres(t, dir))
	assert.NoError(t, bystander.Signal(syscall.Signal(0)), "the process with the PID of the lock file does not run any more")

	require.NoError(t, os.WriteFile(filepath.Join(p.DataDir(), "postgresql.auto.conf"), []byte("no_such_setting = 1\n"), 0o644))
	_, err = devstack.StartPostgres(context.Background(), devstack.PostgresConfig{Dir: dir})
	if err == nil || !strings.Contains(err.Error(), "no_such_setting") {
		t.Errorf("the error is %v, want the log with no_such_setting", err)
	}
}

// takesThePIDOf starts another process, whose PID is in the lock file of a server that was closed.
func takesThePIDOf(t *testing.T, p *devstack.Postgres) *os.Process {
	t.Helper()
	owner, err := os.Stat(p.DataDir())
	require.NoError(t, err)
	stat := owner.Sys().(*syscall.Stat_t)
	bystander := exec.Command("sleep", "600")
	if os.Geteuid() == 0 {
		bystander.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: stat.Uid, Gid: stat.Gid}}
	}
	require.NoError(t, bystander.Start())
	t.Cleanup(func() {
		_ = bystander.Process.Kill()
		_ = bystander.Wait()
	})
	lock := strconv.Itoa(bystander.Process.Pid) + "\n" + p.DataDir() + "\n1\n5432\n\n127.0.0.1\n  1 1\nready   \n"
	require.NoError(t, os.WriteFile(filepath.Join(p.DataDir(), "postmaster.pid"), []byte(lock), 0o600))
	return bystander.Process
}

// The server of a killed parent may be frozen, and so may not end by itself.
func TestPostgres_StartsAfterItsParentWasKilled(t *testing.T) {
	t.Parallel()
	devstack.NeedServer(t, devstack.PostgresServer)
	dir := t.TempDir()
	cleanPostgres(t, dir)
	parent, url := startInAnotherProcess(t, devstack.PostgresServer, dir)
	mustExecute(t, url, `create table cars (id int)`)
	freezePostmaster(t, dir)
	require.NoError(t, parent.Process.Kill())
	_ = parent.Wait()
	mustExecute(t, startPostgres(t, dir).URL(), `insert into cars values (1)`)
}

func freezePostmaster(t *testing.T, dir string) {
	t.Helper()
	pid := postmasterPID(t, dir)
	require.NoError(t, syscall.Kill(pid, syscall.SIGSTOP))
}

func postmasterPID(t *testing.T, dir string) int {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(dataOf(t, dir), "postmaster.pid"))
	require.NoError(t, err)
	first, _, _ := strings.Cut(string(text), "\n")
	pid, err := strconv.Atoi(first)
	require.NoError(t, err)
	return pid
}

// dataOf returns the data folder of a server that another process started.
func dataOf(t *testing.T, dir string) string {
	t.Helper()
	for _, root := range []string{filepath.Join(dir, "cluster"), devstack.OutsideOf(dir)} {
		data := filepath.Join(root, "data")
		if _, err := os.Stat(data); err == nil {
			return data
		}
	}
	t.Fatalf("%s has no data folder", dir)
	return ""
}

// occupied returns a loopback port that is in use until the end of the test.
func occupied(t *testing.T) int {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { _ = l.Close() })
	return l.Addr().(*net.TCPAddr).Port
}

func TestLockFolder_IsFreeOnceUnlocked(t *testing.T) {
	children := make(chan error)
	go func() {
		defer close(children)
		for range 60 { // each child shares the open files until it executes its program
			if err := exec.Command("true").Run(); err != nil {
				children <- err
				return
			}
		}
	}()
	dir := t.TempDir()
	for {
		unlock, err := devstack.LockFolder(dir)
		if err != nil {
			t.Error(err)
			break
		}
		unlock()
		select {
		case err := <-children:
			assert.NoError(t, err)
			return
		default:
		}
	}
	for err := range children {
		t.Error(err)
	}
}
