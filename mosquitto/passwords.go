package mosquitto

import (
	"encoding/base64"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Passwords is a password file: the users that may log in to a listener. The zero value is an empty
// file. Not safe for concurrent use.
type Passwords struct {
	lines []passwordLine // in the order of the file
}

type passwordLine struct {
	user string // empty: a comment
	text string
}

// ParsePasswords parses a password file. It returns an error for each line that some version of
// Mosquitto does not accept: old versions ignore such a user, newer ones end. It skips empty lines.
func ParsePasswords(file []byte) (Passwords, error) {
	var p Passwords
	var problems []error
	seen := map[string]int{}
	for i, text := range strings.Split(string(file), "\n") {
		text = strings.TrimSuffix(text, "\r")
		switch {
		case strings.TrimSpace(text) == "":
			continue
		case strings.HasPrefix(text, "#"):
			p.lines = append(p.lines, passwordLine{text: text})
			continue
		}
		user, hash, _ := strings.Cut(text, ":")
		switch before := seen[user]; {
		case user == "" || user != strings.TrimSpace(user) || strings.Contains(user, "\x00"):
			problems = append(problems, fmt.Errorf("line %d: want a user name, a colon and a hash", i+1))
		case before != 0:
			problems = append(problems, fmt.Errorf("line %d: user %q is on line %d already", i+1, user, before))
		case checkHash(hash) != nil:
			problems = append(problems, fmt.Errorf("line %d: user %q: %w", i+1, user, checkHash(hash)))
		default:
			seen[user] = i + 1
			p.lines = append(p.lines, passwordLine{user, text})
		}
	}
	return p, errors.Join(problems...)
}

// checkHash accepts what mosquitto_passwd writes: PBKDF2-SHA512 ("$7$"), SHA512 ("$6$") and, since
// 2.1, Argon2id.
func checkHash(hash string) error {
	parts := strings.Split(hash, "$")
	if len(parts) < 4 || parts[0] != "" {
		return errors.New("not a hash of mosquitto_passwd")
	}
	encoded := parts[2:]
	switch kind := parts[1]; kind {
	case "argon2id": // $v=19$m=…,t=…,p=…$salt$hash
		if len(parts) != 6 || strings.ContainsAny(hash, " \t:\x00") {
			return errors.New("not an Argon2id hash")
		}
		return nil
	case "7":
		n, err := strconv.Atoi(parts[2])
		if err != nil || n < 1 {
			return errors.New("not a number of iterations")
		}
		encoded = parts[3:]
	case "6":
	default:
		return fmt.Errorf("a hash of the unknown kind %q", kind)
	}
	if len(encoded) != 2 {
		return errors.New("want a salt and a hash")
	}
	salt, err := base64.StdEncoding.DecodeString(encoded[0])
	if err != nil || len(salt) == 0 {
		return errors.New("the salt is not base64")
	}
	if sum, err := base64.StdEncoding.DecodeString(encoded[1]); err != nil || len(sum) != hashBytes {
		return fmt.Errorf("the hash is not base64 of %d bytes", hashBytes)
	}
	return nil
}

// Users returns the users, in the order of the file.
func (p Passwords) Users() []string {
	var users []string
	for _, l := range p.lines {
		if l.user != "" {
			users = append(users, l.user)
		}
	}
	return users
}

// Has reports whether a user may log in.
func (p Passwords) Has(user string) bool { return user != "" && p.index(user) >= 0 }

// Set adds a user with a password, or replaces the user's password. It fails as PasswordLine does.
func (p *Passwords) Set(user, password string) error {
	line, err := PasswordLine(user, password)
	if err != nil {
		return err
	}
	if i := p.index(user); i >= 0 {
		p.lines[i].text = line
	} else {
		p.lines = append(p.lines, passwordLine{user, line})
	}
	return nil
}

// Remove removes a user, if there is one.
func (p *Passwords) Remove(user string) {
	if i := p.index(user); i >= 0 && user != "" {
		p.lines = slices.Delete(p.lines, i, i+1)
	}
}

// Encode returns the content of the file.
func (p Passwords) Encode() []byte {
	var file strings.Builder
	for _, l := range p.lines {
		file.WriteString(l.text + "\n")
	}
	return []byte(file.String())
}

func (p Passwords) index(user string) int {
	return slices.IndexFunc(p.lines, func(l passwordLine) bool { return l.user == user })
}
