package activity

import (
	"context"
	"errors"
	"fmt"
	"hash/crc32"

	"github.com/jmoiron/sqlx"

	"motorpool/store/unavailable"
	"motorpool/telematics"
)

// Finding is a contradiction between the seals and the entries, or among the seals.
type Finding struct {
	Problem         Problem
	Seal            int64 // the number; zero: none
	FirstID, LastID int64 // of the entries that it concerns
	Head            Hash  // of HeadMissing
}

// Problem is a kind of contradiction.
type Problem string

// The kinds of contradictions.
const (
	EntryChanged  Problem = "entry changed"
	EntryRemoved  Problem = "entry removed"
	EntryInserted Problem = "entry inserted"
	// EntriesDiffer means that the entries of a range contradict its seal, and that the marks do
	// not show which.
	EntriesDiffer Problem = "entries changed"
	SealChanged   Problem = "seal changed"
	SealsRemoved  Problem = "seals removed"
	// NoSeals means that entries of more than unsealedSpan have no seal at all.
	NoSeals Problem = "no seals"
	// HeadMissing means that an expected head is not in the chain.
	HeadMissing Problem = "expected head missing"
)

func (f Finding) String() string {
	ids := fmt.Sprint(f.FirstID)
	if f.LastID != f.FirstID {
		ids = fmt.Sprintf("%d to %d", f.FirstID, f.LastID)
	}
	switch f.Problem {
	case EntryChanged:
		return fmt.Sprintf("entry %s was changed after it was sealed (seal %d)", ids, f.Seal)
	case EntryRemoved:
		return fmt.Sprintf("entry %s was removed after it was sealed (seal %d)", ids, f.Seal)
	case EntryInserted:
		return fmt.Sprintf("entry %s was inserted into a range that was sealed before", ids)
	case EntriesDiffer:
		return fmt.Sprintf("entries %s contradict seal %d", ids, f.Seal)
	case SealChanged:
		return fmt.Sprintf("seal %d of the entries %s contradicts the seal before it, or was changed", f.Seal, ids)
	case SealsRemoved:
		return fmt.Sprintf("the seals before seal %d were removed; they covered the entries %s", f.Seal, ids)
	case NoSeals:
		return fmt.Sprintf("entries %s are of more than %v, and there is no seal: all seals were removed, or no instance has ever sealed", ids, telematics.Words(unsealedSpan))
	case HeadMissing:
		return fmt.Sprintf("no seal has the expected hash %v: the log was written anew, has lost its end, or was pruned beyond that seal", f.Head)
	}
	return string(f.Problem)
}

// Report is the result of a verification.
type Report struct {
	Seals, Entries int64 // that were compared
	Unsealed       int64 // entries that are too young for a seal
	PrunedBefore   string
	Head           Seal // zero: there is no seal
	Findings       []Finding
	Omitted        int // findings beyond maxFindings
}

// errPruned means that entries were pruned during a verification.
var errPruned = errors.New("entries were pruned meanwhile: verify again")

// Verify compares all entries with their seals, and searches the chain for expected hashes of
// seals, which were noted elsewhere. It reads the whole log, which may take long, and locks out no
// writers.
func (l *Log) Verify(ctx context.Context, expected ...Hash) (Report, error) {
	db, err := l.db.WithoutTimeouts(ctx, 0)
	if err != nil {
		return Report{}, err
	}
	defer db.Close()
	report, err := verify(ctx, db, expected)
	return report, unavailable.Wrap("verify the audit log", err)
}

func verify(ctx context.Context, db *sqlx.DB, expected []Hash) (Report, error) {
	c, err := openChain(ctx, db)
	if err != nil {
		return Report{}, err
	}
	v := verifier{report: Report{Head: c.head, PrunedBefore: c.prunedBefore()}, chain: c, expected: map[Hash]bool{}}
	for _, h := range expected {
		v.expected[h] = true
	}
	if err := c.walk(ctx, 0, c.head.Number, v.seal); err != nil {
		return v.report, err
	}
	for _, h := range expected {
		if v.expected[h] {
			v.add(Finding{Problem: HeadMissing, Head: h})
		}
	}
	var unsealed struct {
		Entries         int64
		FirstID, LastID int64
		Span            float64 // in seconds
	}
	if err := db.GetContext(ctx, &unsealed, `
		select count(*) as entries, coalesce(min(id), 0) as firstid, coalesce(max(id), 0) as lastid,
			coalesce(extract(epoch from max(at) - min(at)), 0)::float8 as span
		from activity where id > $1`, c.head.LastID); err != nil {
		return v.report, err
	}
	v.report.Unsealed = unsealed.Entries
	if c.head.Number == 0 && unsealed.Span > unsealedSpan.Seconds() {
		v.add(Finding{Problem: NoSeals, FirstID: unsealed.FirstID, LastID: unsealed.LastID})
	}
	after, err := openChain(ctx, db)
	if err == nil && len(after.prunes) != len(c.prunes) {
		err = errPruned
	}
	return v.report, err
}

// verifier checks one seal after another.
type verifier struct {
	report   Report
	chain    chain
	expected map[Hash]bool // false: it was found
}

func (v *verifier) add(f Finding) {
	if len(v.report.Findings) < maxFindings {
		v.report.Findings = append(v.report.Findings, f)
	} else {
		v.report.Omitted++
	}
}

// seal checks a seal against the one before it, and against its entries.
func (v *verifier) seal(previous Seal, s sealed) error {
	pruned := v.chain.pruned(s.Seal)
	v.report.Seals++
	if v.expected[s.Hash] {
		v.expected[s.Hash] = false
	}
	switch {
	case previous.Number == 0 && s.Number > 1 && pruned: // the pruned chain begins here
	case s.Number != previous.Number+1:
		v.add(Finding{Problem: SealsRemoved, Seal: s.Number, FirstID: previous.LastID + 1, LastID: s.FirstID - 1})
		s.stray = nil // those were theirs
	default:
		hash, err := s.after(previous.Hash)
		if err != nil {
			return err
		}
		if hash != s.Hash || s.FirstID != previous.LastID+1 {
			v.add(Finding{Problem: SealChanged, Seal: s.Number, FirstID: s.FirstID, LastID: s.LastID})
		}
	}
	for _, e := range s.stray {
		v.add(Finding{Problem: EntryInserted, FirstID: e.id, LastID: e.id})
	}
	if pruned {
		for _, e := range s.entries {
			v.add(Finding{Problem: EntryInserted, FirstID: e.id, LastID: e.id})
		}
		return nil
	}
	v.report.Entries += int64(len(s.entries))
	found := Seal{FirstID: s.FirstID}
	if found.cover(s.entries); found.Digest != s.Digest {
		v.compare(s)
	}
	return nil
}

// compare finds the entries that contradict their seal.
func (v *verifier) compare(s sealed) {
	marks, found := s.readMarks(), false
	report := func(p Problem, id int64) {
		found = true
		v.add(Finding{Problem: p, Seal: s.Number, FirstID: id, LastID: id})
	}
	for _, e := range s.entries {
		for len(marks) > 0 && marks[0].id < e.id {
			report(EntryRemoved, marks[0].id)
			marks = marks[1:]
		}
		if len(marks) == 0 || marks[0].id != e.id {
			report(EntryInserted, e.id)
			continue
		}
		if marks[0].checksum != crc32.ChecksumIEEE(e.text) {
			report(EntryChanged, e.id)
		}
		marks = marks[1:]
	}
	for _, m := range marks {
		report(EntryRemoved, m.id)
	}
	if !found {
		v.add(Finding{Problem: EntriesDiffer, Seal: s.Number, FirstID: s.FirstID, LastID: s.LastID})
	}
}
