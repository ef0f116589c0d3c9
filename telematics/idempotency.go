package telematics

import (
	"crypto/sha256"
	"time"

	"github.com/google/uuid"
)

// KeptFor is how long a repeated request is recognised by its idempotency key.
const KeptFor = 24 * time.Hour

// IdempotencyKey is a caller's own name for one request, under which it may be repeated
// without being carried out twice. Its scope is the caller.
type IdempotencyKey struct {
	Agency      AgencyID // of the caller; zero: not bound to one
	Subject     string
	Key         string
	Fingerprint [sha256.Size]byte // of the request: another one under the same key is a mistake
}

// BulkID identifies an order to many vehicles; uuid.Nil: to one.
type BulkID = uuid.UUID
