package redis

// A key that belongs to no vehicle is divided among the parts of a cluster; other servers have one
// part.

// Parts returns the key of each part, or of as many as there may be, spread over them.
func (db *DB) Parts(key string, most int) []string {
	keys := make([]string, min(most, len(db.parts)))
	for i := range keys {
		keys[i] = key + db.parts[i*len(db.parts)/len(keys)]
	}
	return keys
}

// Part returns the index of the part that has the keys of a hash tag.
func (db *DB) Part(tag string) int {
	if len(db.parts) == 1 {
		return 0
	}
	return partOf(tag)
}
