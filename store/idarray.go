package store

import (
	"database/sql/driver"
	"encoding/hex"

	"github.com/google/uuid"
)

// idArray is ids as an array of Postgres, in one piece: pq.Array makes several of each.
type idArray []uuid.UUID

// Value implements driver.Valuer. Postgres reads ids without hyphens, too.
func (ids idArray) Value() (driver.Value, error) {
	text := make([]byte, 0, 2+len(ids)*(1+2*len(uuid.UUID{})))
	text = append(text, '{')
	for i := range ids {
		if i > 0 {
			text = append(text, ',')
		}
		text = hex.AppendEncode(text, ids[i][:])
	}
	return append(text, '}'), nil
}
