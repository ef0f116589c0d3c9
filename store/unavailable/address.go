package unavailable

import (
	"errors"
	"fmt"
	"net/url"
)

// RedactURL returns an address without its password.
func RedactURL(address string) string {
	u, err := url.Parse(address)
	if err != nil {
		return "(unreadable)"
	}
	return u.Redacted()
}

// BadAddress leaves the address itself out: it holds a password.
func BadAddress(server string, err error) error {
	if unreadable := (*url.Error)(nil); errors.As(err, &unreadable) {
		err = unreadable.Err
	}
	return fmt.Errorf("read the address of %s: %w", server, err)
}
