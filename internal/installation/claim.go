package installation

import (
	"crypto/rand"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// claim is what an instance announces: that its installation has a place. The text of a claim has
// only letters, digits and dashes, and at most 48 characters.
type claim struct {
	installation string // the first 8 characters of its id: for people
	tenure       string // when the installation took the place, and a random part; sorts by time
	instance     string // the first 12 characters of its id
	beat         int64  // of the instance, as the database has it
}

func (c claim) String() string {
	return strings.Join([]string{c.installation, c.tenure, c.instance, strconv.FormatInt(c.beat, 36)}, "-")
}

// parseClaim reports false for what is not a claim.
func parseClaim(text string) (c claim, ok bool) {
	parts := strings.Split(text, "-")
	if len(parts) != 4 {
		return claim{}, false
	}
	beat, err := strconv.ParseInt(parts[3], 36, 64)
	return claim{parts[0], parts[1], parts[2], beat}, err == nil
}

// newTenure returns a tenure that begins now.
func newTenure(now time.Time) string {
	random := make([]byte, 2)
	_, _ = rand.Read(random) // never fails
	return fmt.Sprintf("%012x%x", now.UnixMilli(), random)
}

// short returns the first n characters of an id, without its dashes.
func short(id string, n int) string {
	id = strings.ReplaceAll(id, "-", "")
	return id[:min(n, len(id))]
}
