package unavailable

import (
	"errors"
	"fmt"
	"net/url"
	"strings"
)

// RedactURL returns an address without its passwords, also those in parameters.
func RedactURL(address string) string {
	u, err := url.Parse(address)
	if err != nil {
		return "(unreadable)"
	}
	parameters, err := url.ParseQuery(u.RawQuery)
	if err != nil {
		return "(unreadable)"
	}
	secret := false
	for name := range parameters {
		if strings.Contains(strings.ToLower(name), "password") {
			parameters.Set(name, "xxxxx") // as Redacted does
			secret = true
		}
	}
	if secret {
		u.RawQuery = parameters.Encode()
	}
	return u.Redacted()
}

// BadAddress returns an error for an invalid address. It does not contain the address, which may
// hold a password.
func BadAddress(server string, err error) error {
	if unreadable, ok := errors.AsType[*url.Error](err); ok {
		err = unreadable.Err
	}
	return fmt.Errorf("read the address of %s: %w", server, err)
}
