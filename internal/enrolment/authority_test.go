package enrolment

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"
)

func TestCreate_ConcurrentCallsMakeOneAuthority(t *testing.T) {
	for range 20 {
		dir := t.TempDir()
		folder, crl := filepath.Join(dir, "authority"), filepath.Join(dir, "units.crl")
		var all sync.WaitGroup
		for range 4 {
			// One call may fail because the other is creating the authority.
			all.Go(func() { _, _ = Create(t.Context(), folder, crl, time.Hour) })
		}
		all.Wait()
		if _, err := Create(t.Context(), folder, crl, time.Hour); err != nil {
			t.Fatalf("the folder cannot be used: %v", err)
		}
		if left, err := filepath.Glob(filepath.Join(folder, ".*")); err != nil || len(left) > 0 {
			t.Errorf("temporary files are left: %q, %v", left, err)
		}
	}
}

func TestCreate_FileModes(t *testing.T) {
	a := newAuthority(t)
	for file, want := range map[string]os.FileMode{a.crl: 0o644, filepath.Join(a.dir, keyFile): 0o600, filepath.Join(a.dir, codesFile): 0o600} {
		if is, err := os.Stat(file); err != nil || is.Mode().Perm() != want {
			t.Errorf("%s has the mode %v, want %v: %v", file, is.Mode(), want, err)
		}
	}
}

func TestIssue_WrongCodeReadsNoFile(t *testing.T) {
	a := newAuthority(t)
	other, err := Open(a.dir, a.crl) // another process
	if err != nil {
		t.Fatal(err)
	}
	code, err := other.NewCode(t.Context(), "unit-1", CodeConfig{Lifetime: time.Hour, CertificateLifetime: time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	if err := a.checkCode(code); err != nil {
		t.Errorf("a code of another process: %v", err)
	}
	// The file is replaced by one with the same size and time but invalid content.
	file := filepath.Join(a.dir, codesFile)
	is, err := os.Stat(file)
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(os.WriteFile(file, bytes.Repeat([]byte("x"), len(text)), 0o600), os.Chtimes(file, is.ModTime(), is.ModTime())); err != nil {
		t.Fatal(err)
	}
	if _, _, err := a.Issue(t.Context(), "a guess", newCSR(t)); !errors.Is(err, ErrCode) {
		t.Errorf("a wrong code: %v, want ErrCode", err)
	}
	if err := os.WriteFile(file, text, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := other.Revoke(t.Context(), Everything, "unit-1"); err != nil {
		t.Fatal(err)
	}
	if err := a.checkCode(code); !errors.Is(err, ErrCode) {
		t.Errorf("a revoked code: %v, want ErrCode", err)
	}
}
