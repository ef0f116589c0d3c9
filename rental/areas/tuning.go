package areas

const (
	// MaxBytes bounds the GeoJSON of an area, and so the body of a request. Half: 5,000 positions
	// as some programs write them (with line breaks and 15 decimals) do not fit; double: no shape
	// with MaxPoints needs it.
	MaxBytes = 256 << 10

	// MaxPoints bounds the positions of an area, before it is simplified. The border of a city is
	// a few hundred, that of a country in detail a few thousand. At double, a shape that is made
	// to be slow to check takes seconds.
	MaxPoints = 5000

	// MaxAreas bounds the areas of an agency. Half: an area for each street does not fit; double:
	// twice the memory in each instance, which holds all areas.
	MaxAreas = 1000

	// MaxTotal bounds the GeoJSON of all areas of an agency, simplified, in bytes: some 100,000
	// positions. Half: detailed borders of hundreds of towns do not fit; double: the list of the
	// areas is twice as long, and so is the memory in each instance.
	MaxTotal = 4 << 20

	// tolerance is how far a border may move when it is simplified, in degrees: 2.2 m to the
	// north, less to the east. Half: more points of a border that was recorded while driving
	// along it; double: more than the width of a lane.
	tolerance = 2e-5

	// minRing is a triangle, closed (RFC 7946, 3.1.6).
	minRing = 4
)
