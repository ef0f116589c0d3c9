package devstack

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	embeddedpostgres "github.com/fergusstrange/embedded-postgres"
)

const (
	oldestMajor = 13
	anyMajor    = 0

	// downloaded is the version of the programs that are fetched where nothing is installed.
	downloaded = embeddedpostgres.V17
)

// programs is a folder with PostgreSQL's programs.
type programs struct {
	bin   string
	major int
}

// providePostgres finds PostgreSQL of a major version, and downloads it if there is none: not for
// root, as whom the server cannot run.
func providePostgres(major int, log *slog.Logger) (programs, error) {
	found, missing := findPostgres(major)
	if missing == nil {
		return found, nil
	}
	if os.Geteuid() == 0 {
		return programs{}, fmt.Errorf("%w; for a user other than root it is downloaded", missing)
	}
	log.Info("postgres is not installed: downloading it", "version", downloaded, "to", downloadDir())
	if err := downloadPostgres(); err != nil {
		return programs{}, errors.Join(missing, err)
	}
	return findPostgres(major)
}

// findPostgres looks for programs on this machine. The error names the ways to get them.
func findPostgres(major int) (programs, error) {
	for _, bin := range programFolders() {
		p, err := inspect(bin)
		if err == nil && p.major >= oldestMajor && (major == anyMajor || major == p.major) {
			return p, nil
		}
	}
	wanted := fmt.Sprintf("%d or newer", oldestMajor)
	if major != anyMajor {
		wanted = fmt.Sprintf("%d, which made the data (remove them to start afresh),", major)
	}
	return programs{}, fmt.Errorf(
		"PostgreSQL %s is not installed: install it (Debian: sudo apt-get install postgresql; macOS: brew install postgresql), "+
			"or name a server with DATABASE_URL",
		wanted,
	)
}

// programFolders lists where PostgreSQL may lie, the best first.
func programFolders() []string {
	var folders []string
	if bindir, err := exec.Command("pg_config", "--bindir").Output(); err == nil {
		folders = append(folders, strings.TrimSpace(string(bindir)))
	}
	if postgres, err := exec.LookPath("postgres"); err == nil {
		folders = append(folders, filepath.Dir(postgres))
	}
	for _, pattern := range []string{
		"/usr/lib/postgresql/*/bin", // Debian
		"/usr/pgsql-*/bin",          // Red Hat
		"/opt/homebrew/opt/postgresql@*/bin",
		"/usr/local/opt/postgresql@*/bin",
	} {
		found, _ := filepath.Glob(pattern)
		slices.SortFunc(found, func(a, b string) int { return numberIn(b) - numberIn(a) })
		folders = append(folders, found...)
	}
	return append(folders, filepath.Join(downloadDir(), "bin"))
}

// numberIn returns the digits of a path as a number, so that 15 sorts above 9.
func numberIn(path string) int {
	n, _ := strconv.Atoi(strings.Map(func(r rune) rune {
		if r < '0' || r > '9' {
			return -1
		}
		return r
	}, path))
	return n
}

// inspect returns an error unless a folder has the server: pg_config may come with the client
// library alone.
func inspect(bin string) (programs, error) {
	if _, err := os.Stat(filepath.Join(bin, "initdb")); err != nil {
		return programs{}, err
	}
	said, err := exec.Command(filepath.Join(bin, "postgres"), "--version").Output()
	if err != nil {
		return programs{}, err
	}
	// postgres (PostgreSQL) 15.8 (Debian 15.8-0+deb12u1)
	_, version, _ := strings.Cut(string(said), "(PostgreSQL) ")
	digits := strings.IndexFunc(version, func(r rune) bool { return r < '0' || r > '9' })
	major, err := strconv.Atoi(version[:max(digits, 0)])
	if err != nil {
		return programs{}, fmt.Errorf("version of %s: %q", bin, said)
	}
	return programs{bin, major}, nil
}

// downloadDir is where downloaded programs stay.
func downloadDir() string {
	cache, err := os.UserCacheDir()
	if err != nil {
		cache = os.TempDir()
	}
	return filepath.Join(cache, "motorpool", "postgres-"+string(downloaded))
}

// downloadPostgres fetches the programs. The library does so only to start a server, so one is
// started and stopped again, in a folder that is given its name when it is complete.
func downloadPostgres() error {
	final := downloadDir()
	if err := os.MkdirAll(filepath.Dir(final), 0o700); err != nil {
		return fmt.Errorf("download postgres: %w", err)
	}
	work, err := os.MkdirTemp(filepath.Dir(final), "unfinished-")
	if err != nil {
		return fmt.Errorf("download postgres: %w", err)
	}
	defer os.RemoveAll(work)
	port, err := FreePort()
	if err != nil {
		return fmt.Errorf("download postgres: %w", err)
	}
	server := embeddedpostgres.NewDatabase(embeddedpostgres.DefaultConfig().
		Version(downloaded).
		Port(uint32(port)).
		CachePath(filepath.Join(work, "archive")).
		BinariesPath(filepath.Join(work, "programs")).
		RuntimePath(filepath.Join(work, "run")).
		DataPath(filepath.Join(work, "data")).
		StartParameters(map[string]string{"unix_socket_directories": ""}).
		Logger(nil))
	if err := server.Start(); err != nil {
		return fmt.Errorf("download postgres: %w", err)
	}
	if err := server.Stop(); err != nil {
		return fmt.Errorf("download postgres: %w", err)
	}
	err = os.Rename(filepath.Join(work, "programs"), final)
	if err != nil && !exists(final) { // else another process was faster
		return fmt.Errorf("download postgres: %w", err)
	}
	return nil
}
