package devstack

import (
	"cmp"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// cluster is a PostgreSQL data folder with what is needed to run a server on it.
//
//	{Dir}/lock              held while a server runs, or is being prepared
//	{Dir}/password          the superuser's
//	{Dir}/cluster/data      the data; if the server's user cannot reach them there, then while the server runs:
//	/var/tmp/motorpool-postgres-{hash of Dir}/data, or in the folder of temporary files that has Dir
type cluster struct {
	home     string // the folder inside Dir, where the data are kept while no server runs
	root     string // the folder that belongs to the server's user; "" before there is one
	secret   string // the file of the password
	password string
	account  *account // nil: the server runs as we do
	programs programs
}

// orphanTimeout is how long a server whose parent was killed may take to end.
const orphanTimeout = 10 * time.Second

// LockFolder makes sure that no other process works in dir, which is created if need be. The kernel
// frees the lock of a process that was killed, so a server that still runs in a folder whose lock
// is free is an orphan.
func LockFolder(dir string) (unlock func(), err error) {
	if err := os.MkdirAll(dir, 0o711); err != nil {
		return nil, err
	}
	file, err := os.OpenFile(filepath.Join(dir, "lock"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	if err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		_ = file.Close()
		return nil, fmt.Errorf("folder %s is in use by another process: %w", dir, err)
	}
	return func() {
		// A child process that is just being started shares the open file, so closing alone may
		// keep the lock for a moment.
		_ = syscall.Flock(int(file.Fd()), syscall.LOCK_UN)
		_ = file.Close()
	}, nil
}

// openCluster finds the cluster that belongs to cfg.Dir, or makes one. The caller holds the lock of
// that folder.
func openCluster(ctx context.Context, cfg *PostgresConfig, log *slog.Logger) (*cluster, error) {
	dir, err := realPath(cfg.Dir)
	if err != nil {
		return nil, err
	}
	c := &cluster{home: insideOf(dir), secret: filepath.Join(dir, "password")}
	if c.root, err = findCluster(dir); err != nil {
		return nil, err
	}
	major, err := c.major()
	if err != nil {
		return nil, err
	}
	if c.programs, err = providePostgres(major, log); err != nil {
		return nil, err
	}
	if c.password, err = keptPassword(c.secret); err != nil {
		return nil, err
	}
	if c.root != "" {
		return c, c.reopen(dir, log)
	}
	if err := c.place(dir, log); err != nil {
		return nil, err
	}
	if err := c.create(ctx, cfg); err != nil {
		return nil, fmt.Errorf("create the cluster in %s: %w", c.root, err)
	}
	return c, nil
}

// findCluster returns where the cluster of dir lies, or "" if there is none.
func findCluster(dir string) (string, error) {
	inside, outside := insideOf(dir), outsideOf(dir)
	known := exists(filepath.Join(dir, "password"))
	switch {
	case exists(filepath.Join(inside, "data")) && !known:
		return "", fmt.Errorf("the password of the cluster in %s is gone; remove %s to start afresh", inside, dir)
	case exists(filepath.Join(inside, "data")):
		return inside, nil
	case exists(filepath.Join(outside, "data")) && known:
		return outside, nil
	}
	// Data outside without a password are those of a folder that was removed since.
	return "", nil
}

// reopen finds the user to whom the cluster belongs.
func (c *cluster) reopen(dir string, log *slog.Logger) error {
	var err error
	if c.account, err = ownerOf(c.root); err != nil {
		return err
	}
	if c.root == c.home && !c.account.reaches(c.root) {
		if err := c.moveOutside(dir); err != nil {
			return fmt.Errorf("user %s cannot reach %s; let it pass through the folders above: %w", c.account.name, c.root, err)
		}
	}
	if c.root != insideOf(dir) {
		log.Info("postgres keeps its data outside of the data folder", "folder", dir, "data", c.dataDir())
	}
	return nil
}

// place chooses the user and the folder of a new cluster, and makes the folder.
func (c *cluster) place(dir string, log *slog.Logger) error {
	accounts, err := serverAccounts()
	if err != nil {
		return err
	}
	c.account, c.root = accounts[0], insideOf(dir)
	if err := os.RemoveAll(c.root); err != nil { // what a start that was killed left behind
		return err
	}
	if err := c.account.mkdir(c.root); err != nil {
		return err
	}
	if c.account.reaches(c.root) {
		return nil
	}
	if err := os.RemoveAll(c.root); err != nil {
		return err
	}

	c.root = outsideOf(dir)
	log.Info("postgres keeps its data outside of the data folder, which its user cannot reach",
		"user", c.account.name, "folder", dir, "data", c.dataDir())
	if err := removeStale(c.root); err != nil {
		return err
	}
	return c.account.mkdir(c.root)
}

// removeStale removes the data of a folder that was removed since.
func removeStale(outside string) error {
	if !exists(outside) {
		return nil
	}
	if _, err := ownerOf(outside); err != nil {
		return err
	}
	return os.RemoveAll(outside)
}

// moveOutside moves the data to where the server's user can reach them.
func (c *cluster) moveOutside(dir string) error {
	outside := outsideOf(dir)
	if err := removeStale(outside); err != nil {
		return err
	}
	if err := os.Rename(c.root, outside); err != nil {
		return err
	}
	c.root = outside
	return nil
}

// moveHome moves the data back into the folder that they belong to, so that removing it leaves
// nothing elsewhere. Where it was removed already, they are removed, too. Between two file systems
// they stay where they are. The server must not run.
func (c *cluster) moveHome() error {
	if c.root == c.home || !exists(c.root) {
		return nil
	}
	if !exists(filepath.Dir(c.home)) {
		return os.RemoveAll(c.root)
	}
	err := os.Rename(c.root, c.home)
	if errors.Is(err, syscall.EXDEV) {
		return nil
	}
	if err == nil {
		c.root = c.home
	}
	return err
}

// create makes the cluster under another name first, so that a half-made one is never taken for a
// whole.
func (c *cluster) create(ctx context.Context, cfg *PostgresConfig) error {
	unfinished, passwords := filepath.Join(c.root, "data.new"), filepath.Join(c.root, "password.tmp")
	if err := os.WriteFile(passwords, []byte(c.password+"\n"), 0o600); err != nil {
		return err
	}
	defer os.Remove(passwords)
	if err := c.account.give(passwords); err != nil {
		return err
	}
	args := []string{"-D", unfinished, "--username=" + postgresUser, "--pwfile=" + passwords,
		"--auth=" + cmp.Or(cfg.Auth, "scram-sha-256"), "--encoding=UTF8", "--locale=C"}
	if !cfg.Fsync {
		args = append(args, "--no-sync")
	}
	if said, err := runWith(ctx, c.program("initdb", args...)); err != nil {
		return fmt.Errorf("initdb: %w; it said:\n%s", err, said)
	}
	return os.Rename(unfinished, c.dataDir())
}

// program is a command of PostgreSQL, run as the server's user, deaf to the PG* variables of our
// environment.
func (c *cluster) program(name string, args ...string) *exec.Cmd {
	cmd := exec.Command(filepath.Join(c.programs.bin, name), args...)
	cmd.Dir = c.root
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + c.root, "LC_ALL=C", "TZ=UTC"}
	cmd.SysProcAttr = c.account.attributes()
	return cmd
}

func (c *cluster) dataDir() string { return filepath.Join(c.root, "data") }

// major is the PostgreSQL version that made the data: only it can read them. anyMajor if there are
// none.
func (c *cluster) major() (int, error) {
	if c.root == "" {
		return anyMajor, nil
	}
	text, err := os.ReadFile(filepath.Join(c.dataDir(), "PG_VERSION"))
	if err != nil {
		return 0, err
	}
	major, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil {
		return 0, fmt.Errorf("version of the cluster in %s: %w", c.root, err)
	}
	return major, nil
}

// endOrphan stops a server that outlived its parent, and removes a lock file that no process holds.
// Postgres takes any living process with the recorded number, if it has the same user, for the
// owner of its lock: after a crash in a small container there often is one.
func (c *cluster) endOrphan() error {
	lock := filepath.Join(c.dataDir(), "postmaster.pid")
	text, err := os.ReadFile(lock)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	first, _, _ := strings.Cut(string(text), "\n")
	pid, err := strconv.Atoi(strings.TrimSpace(first))
	if err != nil || pid <= 0 {
		return os.Remove(lock) // it was not even written whole
	}
	ours := func() bool { return strings.Contains(commandLine(pid), " -D "+c.dataDir()+" ") }
	if ours() {
		_ = syscall.Kill(pid, syscall.SIGQUIT)
		_ = (&process{pid: pid}).thaw() // it may have been frozen when its parent died
	}
	for deadline := time.Now().Add(orphanTimeout); ours(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(deadline) {
			return fmt.Errorf("process %d still runs on %s and does not end", pid, c.dataDir())
		}
	}
	if err := os.Remove(lock); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// remove forgets the cluster. Its server must not run.
func (c *cluster) remove() error {
	return errors.Join(os.RemoveAll(c.root), os.RemoveAll(c.secret))
}

// keptPassword reads the password from a file, or draws one.
func keptPassword(path string) (string, error) {
	text, err := os.ReadFile(path)
	if err == nil {
		return strings.TrimSpace(string(text)), nil
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return "", err
	}
	password := rand.Text()
	return password, os.WriteFile(path, []byte(password+"\n"), 0o600)
}

// insideOf is where the cluster of a folder lies if the server's user can reach it.
func insideOf(dir string) string { return filepath.Join(dir, "cluster") }

// outsideOf is where the cluster of a folder lies that the server's user cannot reach: /tmp may be
// emptied at boot, so there are only those of folders that are in it.
func outsideOf(dir string) string {
	parent := "/var/tmp"
	if temporary, err := realPath(os.TempDir()); err == nil && strings.HasPrefix(dir, temporary+"/") && isPublic(temporary) {
		parent = temporary
	}
	hash := sha256.Sum256([]byte(dir))
	return filepath.Join(parent, fmt.Sprintf("motorpool-postgres-%x", hash[:8]))
}

func isPublic(dir string) bool {
	info, err := os.Stat(dir)
	return err == nil && info.Mode()&os.ModeSticky != 0
}

func realPath(dir string) (string, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return "", err
	}
	return filepath.EvalSymlinks(dir)
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}
