package signin

import (
	"net/http"
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

// VerifyBy replaces the comparison of a password with a hash, which is slow on purpose.
func (s *SignIn) VerifyBy(verify func(hash, password string) bool) { s.verify = verify }
