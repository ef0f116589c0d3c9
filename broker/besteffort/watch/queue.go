package watch

// queue is a heap of units, the one that is due first in front. See container/heap.
type queue []*watched

func (q queue) Len() int           { return len(q) }
func (q queue) Less(i, j int) bool { return q[i].due.Before(q[j].due) }

func (q queue) Swap(i, j int) {
	q[i], q[j] = q[j], q[i]
	q[i].place, q[j].place = i, j
}

// Push implements heap.Interface.
func (q *queue) Push(x any) {
	u := x.(*watched)
	u.place = len(*q)
	*q = append(*q, u)
}

// Pop implements heap.Interface.
func (q *queue) Pop() any {
	last := len(*q) - 1
	u := (*q)[last]
	(*q)[last] = nil
	*q = (*q)[:last]
	return u
}
