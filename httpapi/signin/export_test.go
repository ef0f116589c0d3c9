package signin

import (
	"net/http"
	"strings"

	"motorpool/operators"
)

// Authorization returns the header with the access token of a request's session; empty: it has
// none.
func (s *SignIn) Authorization(r *http.Request) (string, error) {
	open, has, err := s.open(r)
	if err != nil || !has {
		return "", err
	}
	return "Bearer " + open.Access, nil
}

// OccupyNewBrowsers takes all places of browsers that are not known.
func (s *SignIn) OccupyNewBrowsers() {
	for range cap(s.newBrowsers) {
		s.newBrowsers <- struct{}{}
	}
}

// RecordVerifications lets add have the parameters of each hash that a password is compared with.
func (s *SignIn) RecordVerifications(add func(parameters string)) {
	s.verify = func(hash, password string) bool {
		parts := strings.Split(hash, "$")
		add(strings.Join(parts[:min(4, len(parts))], "$"))
		return operators.VerifyPassword(hash, password)
	}
}
