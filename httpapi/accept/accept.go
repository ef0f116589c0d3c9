// Package accept reads the headers in which callers state what they accept.
package accept

import (
	"net/http"
	"strconv"
	"strings"
)

// Gzip reports whether a caller accepts gzip, by its Accept-Encoding (RFC 9110, 12.5.3): the weight
// of gzip counts, or else that of all codings (*). A weight that is not a number counts as zero.
func Gzip(header http.Header) bool {
	accepts := false
	for part := range strings.SplitSeq(strings.Join(header.Values("Accept-Encoding"), ","), ",") {
		coding, parameter, _ := strings.Cut(part, ";")
		switch strings.ToLower(strings.TrimSpace(coding)) {
		case "gzip", "x-gzip":
			return isWanted(parameter)
		case "*":
			accepts = isWanted(parameter)
		}
	}
	return accepts
}

// isWanted reports whether a coding with a parameter, such as q=0.5, has a weight above zero.
func isWanted(parameter string) bool {
	name, value, _ := strings.Cut(parameter, "=")
	if strings.TrimSpace(name) == "" {
		return true
	}
	weight, err := strconv.ParseFloat(strings.TrimSpace(value), 64)
	return err == nil && weight > 0 && strings.EqualFold(strings.TrimSpace(name), "q")
}
