package activity

import (
	"context"
	"crypto/sha256"
	"database/sql/driver"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"hash/crc32"
	"time"

	"github.com/jmoiron/sqlx"

	"motorpool/store/pg"
)

// Hash is a SHA-256: of a seal, or of the lines of its entries.
type Hash [sha256.Size]byte

// ParseHash reads the 64 hexadecimal digits of a hash.
func ParseHash(text string) (h Hash, err error) {
	return h, h.UnmarshalText([]byte(text))
}

func (h Hash) String() string { return hex.EncodeToString(h[:]) }

// MarshalText returns the hash as hexadecimal digits.
func (h Hash) MarshalText() ([]byte, error) { return []byte(h.String()), nil }

// UnmarshalText is the reverse of MarshalText.
func (h *Hash) UnmarshalText(text []byte) error {
	if n, err := hex.Decode(make([]byte, hex.DecodedLen(len(text))), text); err != nil || n != len(h) {
		return fmt.Errorf("%q is not a hash of %d hexadecimal digits", text, hex.EncodedLen(len(h)))
	}
	_, err := hex.Decode(h[:], text)
	return err
}

// Scan reads a bytea.
func (h *Hash) Scan(value any) error {
	b, ok := value.([]byte)
	if !ok || len(b) != len(h) {
		return fmt.Errorf("%v is not a hash", value)
	}
	copy(h[:], b)
	return nil
}

// Value returns a bytea.
func (h Hash) Value() (driver.Value, error) { return h[:], nil }

// Seal covers the entries of a range of ids. All of them are of one month, so that a month can be
// removed as a whole.
type Seal struct {
	Number       int64      `db:"number" json:"seal"`
	Month        string     `db:"month" json:"month"`
	FirstID      int64      `db:"first_id" json:"first_id"`
	LastID       int64      `db:"last_id" json:"last_id"`
	Entries      int        `db:"entries" json:"entries"`
	FirstAt      *time.Time `db:"first_at" json:"first_at,omitempty"`
	LastAt       *time.Time `db:"last_at" json:"last_at,omitempty"`
	Digest       Hash       `db:"digest" json:"digest"`
	PrunedBefore *string    `db:"pruned_before" json:"pruned_before,omitempty"`
	SealedAt     time.Time  `db:"sealed_at" json:"sealed_at"`
	Previous     Hash       `db:"-" json:"previous"`
	Marks        []byte     `db:"marks" json:"-"`
	Hash         Hash       `db:"hash" json:"-"`
}

const sealColumns = `number, month, first_id, last_id, entries, first_at, last_at, digest, pruned_before, sealed_at, marks, hash`

// line returns the seal as JSON with a newline, after a seal with the given hash. Its SHA-256 is
// the seal's hash.
func (s Seal) line(previous Hash) ([]byte, error) {
	s.Previous, s.SealedAt = previous, s.SealedAt.UTC()
	s.FirstAt, s.LastAt = pg.Timestamp(pg.Deref(s.FirstAt)), pg.Timestamp(pg.Deref(s.LastAt))
	text, err := json.Marshal(s)
	if err != nil {
		return nil, fmt.Errorf("seal %d: %w", s.Number, err)
	}
	return append(text, '\n'), nil
}

// after returns the hash of the seal, after a seal with the given hash.
func (s Seal) after(previous Hash) (Hash, error) {
	text, err := s.line(previous)
	return sha256.Sum256(text), err
}

// sealedEntry is an entry with its line.
type sealedEntry struct {
	id   int64
	at   time.Time
	text []byte
}

// cover sets the fields of a seal that depend on its entries.
func (s *Seal) cover(entries []sealedEntry) {
	sum := sha256.New()
	s.Marks = []byte{}
	previous := s.FirstID - 1
	for _, e := range entries {
		sum.Write(e.text)
		s.Marks = binary.AppendUvarint(s.Marks, uint64(e.id-previous))
		s.Marks = binary.BigEndian.AppendUint32(s.Marks, crc32.ChecksumIEEE(e.text))
		previous = e.id
		if s.FirstAt == nil || e.at.Before(*s.FirstAt) {
			s.FirstAt = &e.at
		}
		if s.LastAt == nil || e.at.After(*s.LastAt) {
			s.LastAt = &e.at
		}
	}
	s.Entries = len(entries)
	sum.Sum(s.Digest[:0])
}

// mark is the checksum of one entry in a seal. It proves nothing, but finds the entry that
// contradicts the digest.
type mark struct {
	id       int64
	checksum uint32
}

func (s Seal) readMarks() []mark {
	var marks []mark
	id := s.FirstID - 1
	for rest := s.Marks; len(rest) > 0; {
		delta, n := binary.Uvarint(rest)
		if n <= 0 || len(rest) < n+4 {
			return nil // was changed: only the whole range can be named
		}
		id += int64(delta)
		marks = append(marks, mark{id, binary.BigEndian.Uint32(rest[n:])})
		rest = rest[n+4:]
	}
	return marks
}

// head returns the last seal; the zero seal where there is none.
func head(ctx context.Context, db sqlx.QueryerContext) (Seal, error) {
	seals, err := readSeals(ctx, db, `order by number desc limit 1`)
	if err != nil || len(seals) == 0 {
		return Seal{}, err
	}
	return seals[0], nil
}

func readSeals(ctx context.Context, db sqlx.QueryerContext, which string, args ...any) ([]Seal, error) {
	var seals []Seal
	err := sqlx.SelectContext(ctx, db, &seals, `select `+sealColumns+` from activity_seals `+which, args...)
	return seals, err
}

// insert inserts the seal.
func (s Seal) insert(ctx context.Context, db pg.Execer) error {
	_, err := db.ExecContext(ctx, `insert into activity_seals (`+sealColumns+`) values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12)`,
		s.Number, s.Month, s.FirstID, s.LastID, s.Entries, s.FirstAt, s.LastAt, s.Digest, s.PrunedBefore, s.SealedAt, s.Marks, s.Hash)
	return err
}

// next returns the seal after s, which covers the given entries and ends with the last one.
func (s Seal) next(entries []sealedEntry, now time.Time) (Seal, error) {
	last := entries[len(entries)-1]
	seal := Seal{
		Number: s.Number + 1, Month: month(last.at), FirstID: s.LastID + 1, LastID: last.id, SealedAt: now.UTC().Truncate(time.Microsecond),
	}
	seal.cover(entries)
	var err error
	seal.Hash, err = seal.after(s.Hash)
	return seal, err
}
