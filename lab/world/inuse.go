package world

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"motorpool/cmd/dev/folder"
	"motorpool/httpapi/auth"
	"motorpool/internal/keyfile"
	"motorpool/telematics"
	"motorpool/telematics/signing"
)

// InUse is the set of secrets in use, which no log may contain. The zero value is empty. It is safe
// for concurrent use.
type InUse struct {
	mu       sync.Mutex        // guards what follows
	names    map[string]string // of the secrets, by their texts
	tooShort []string          // names of secrets that are too short to be searched for
}

// shortestSecret is the minimum length of a secret: logs contain shorter texts by chance.
const shortestSecret = 8

// Add adds a secret. It ignores an empty one.
func (u *InUse) Add(name, secret string) {
	u.mu.Lock()
	defer u.mu.Unlock()
	switch {
	case secret == "":
	case len(secret) < shortestSecret:
		u.tooShort = append(u.tooShort, name)
	case u.names[secret] == "":
		if u.names == nil {
			u.names = map[string]string{}
		}
		u.names[secret] = name
	}
}

// AddBytes adds a binary secret, in each encoding in which programs print bytes.
func (u *InUse) AddBytes(name string, secret []byte) {
	u.Add(name+", hexadecimal", hex.EncodeToString(secret))
	u.Add(name+", base64", base64.RawStdEncoding.EncodeToString(secret))
	u.Add(name+", base64url", base64.RawURLEncoding.EncodeToString(secret))
}

// AddToken adds an access token: its signature, without which the token is useless, and its claims,
// which name a person.
func (u *InUse) AddToken(name, token string) {
	if parts := strings.Split(token, "."); len(parts) == 3 {
		u.Add("claims of the token of "+name, parts[1])
		u.Add("signature of the token of "+name, parts[2])
		return
	}
	u.Add("token of "+name, token)
}

// AddKeys adds private keys.
func (u *InUse) AddKeys(name string, keys ...signing.Key) {
	for _, key := range keys {
		u.AddBytes(name+" "+key.ID, key.Private.Seed())
	}
}

// AddURL adds the password of a URL.
func (u *InUse) AddURL(name, address string) {
	if parsed, err := url.Parse(address); err == nil {
		password, _ := parsed.User.Password()
		u.Add(name, password)
	}
}

// Leak is a secret in a log.
type Leak struct {
	Secret string // its name
	File   string
	Line   int
}

// String names the secret, and does not show it.
func (l Leak) String() string { return fmt.Sprintf("%s:%d has the %s", l.File, l.Line, l.Secret) }

// Search returns, for each secret, the first line of a log that contains it. It fails if there is
// no secret, or one is too short.
func (u *InUse) Search(file string, log []byte) ([]Leak, error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if len(u.names) == 0 || len(u.tooShort) > 0 {
		return nil, fmt.Errorf("search logs for %d secrets; too short to be searched for: %q", len(u.names), u.tooShort)
	}
	var leaks []Leak
	// One pass, as there are thousands of tokens, and hundreds of megabytes.
	begin := map[[shortestSecret]byte][]string{}
	for secret := range u.names {
		first := [shortestSecret]byte([]byte(secret))
		begin[first] = append(begin[first], secret)
	}
	found := map[string]bool{}
	for at := range max(0, len(log)-shortestSecret+1) {
		for _, secret := range begin[[shortestSecret]byte(log[at:])] {
			if !found[secret] && bytes.HasPrefix(log[at:], []byte(secret)) {
				found[secret] = true
				leaks = append(leaks, Leak{Secret: u.names[secret], File: file, Line: 1 + bytes.Count(log[:at], []byte("\n"))})
			}
		}
	}
	return leaks, nil
}

// LogSearch is what a search of all logs has found.
type LogSearch struct {
	Lines int
	Leaks []Leak
}

// SearchLogs searches the logs in the folder of the world for all secrets of the world. The world
// should be closed, so that the logs are complete.
func (w *World) SearchLogs() (found LogSearch, err error) {
	chain, err := keyfile.Read(w.Path(folder.SigningFile))
	if err != nil {
		return found, err
	}
	w.AddSigningKeys(chain)
	files, err := filepath.Glob(w.Path("*.log"))
	if err != nil || len(files) == 0 {
		return found, errors.Join(err, fmt.Errorf("no log in %s", w.Dir))
	}
	for _, file := range files {
		log, err := os.ReadFile(file)
		if err != nil {
			return found, err
		}
		leaks, err := w.InUse.Search(filepath.Base(file), log)
		if err != nil {
			return found, err
		}
		found.Lines += bytes.Count(log, []byte("\n"))
		found.Leaks = append(found.Leaks, leaks...)
	}
	return found, nil
}

// AddSigningKeys adds private keys that sign commands to the secrets in use. SearchLogs adds those
// that are in the world's file by then.
func (w *World) AddSigningKeys(chain signing.Keychain) {
	for _, key := range chain {
		w.InUse.AddKeys("signing key", key.Key)
	}
}

// Token returns an access token, which is then in use.
func (w *World) Token(actor telematics.Actor, scopes ...string) (string, error) {
	return w.TokenAt(0, actor, scopes...)
}

// TokenAt returns an access token of an administrator with a level, which is then in use.
func (w *World) TokenAt(level auth.Level, actor telematics.Actor, scopes ...string) (string, error) {
	token, err := w.Folder.TokenAt(level, actor, scopes...)
	w.InUse.AddToken(actor.Subject, token)
	return token, err
}
