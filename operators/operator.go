// Package operators has the rules of the built-in sign-in, for installations without an OpenID
// Connect issuer: names, roles and passwords of the people who use the console, and the links with
// which they set a password. No I/O.
package operators

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"motorpool/telematics"
)

// Operator is a person who signs in to the console with a name and a password.
type Operator struct {
	ID     int64
	Name   string // unique among those who are not removed; the actor in the audit log
	Role   Role
	Agency telematics.AgencyID // zero: not bound to one
	Scopes []string
	// Password is the hash of HashPassword; empty: none was set, so the operator cannot sign in.
	Password string
	// Epoch grows with each change of the password: sessions of an earlier one have ended.
	Epoch     int64
	LinkUntil time.Time // when the link that sets a password ends; zero: there is none
	Created   time.Time
}

// Actor returns the operator as the actor of requests.
func (o Operator) Actor() telematics.Actor {
	return telematics.Actor{Subject: o.Name, Role: telematics.Admin, Agency: o.Agency}
}

// Role is the role of an access token with the same rights.
type Role string

// The roles of people, as docs/tokens.md has them.
const (
	Admin  Role = "admin"
	Moves  Role = "operator" // moves vehicles, but neither halts commands nor moves money
	Viewer Role = "viewer"
)

var nameForm = regexp.MustCompile(`^[a-z0-9][a-z0-9._@-]{0,63}$`)

// ParseName returns the name that a person has typed as it is stored; false: no operator can have
// it.
func ParseName(typed string) (string, bool) {
	name := strings.ToLower(strings.TrimSpace(typed))
	return name, nameForm.MatchString(name)
}

// Check returns why an operator cannot be added; nil: it can. allAgencies is the scope that an
// operator of no agency needs, as a token does; known are all scopes.
func (o Operator) Check(allAgencies string, known []string) error {
	if name, ok := ParseName(o.Name); !ok || name != o.Name {
		return errors.New("a name is 1 to 64 lower-case letters, digits, and . _ @ -, and begins with a letter or a digit")
	}
	for _, scope := range o.Scopes {
		if !slices.Contains(known, scope) {
			return fmt.Errorf("there is no scope %q; there are %s", scope, strings.Join(known, ", "))
		}
	}
	if o.Agency == 0 && !slices.Contains(o.Scopes, allAgencies) {
		return fmt.Errorf("name the agency, or give the scope %s", allAgencies)
	}
	return nil
}
