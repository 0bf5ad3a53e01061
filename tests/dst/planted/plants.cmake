# SPDX-License-Identifier: Apache-2.0
# The faults that are planted: one a row, of the kind that people make. FROM becomes TO in
# FILE; a header's change is seen by COMPILE alone. KIND is what a user would suffer: memory
# (written where or when it must not be), data (wrong bytes or wrong news), twice (a completion
# that comes again), hang, slow, leak. HARM says how. BY: the test program that
# must see it; dst where there is none. CASES: of the catalogue, instead of seeds.

# Of the catalogue: those in which slower repair or less sent at a time shows.
set(SLOW_CASES "xfer_loss_1 many_short_loss nth_attempt_first nth_attempt_last ack_loss_50")
string(APPEND SLOW_CASES " ack_loss_90 heavy_loss interop_goodput chained app_limited")

# ---- rel: who sends what again, and when ----

plant(rel_resend_undated
  LAYER rel KIND hang
  FILE src/rel/tx_store.c
  FROM [[e->sent_ns = now_ns;]]
  TO [[e->sent_ns = was ? was[bit].sent_ns : now_ns;]]
  HARM "a resend keeps its first time: lost again at once, or its timer never finds it")

plant(rel_ack_run_long
  LAYER rel KIND hang
  FILE src/rel/tx_ack.c
  FROM [[uint64_t bits = rel_mask_below(unit, (uint32_t)end) & ~rel_mask_below(unit, first);]]
  TO [[uint64_t bits = rel_mask_below(unit, (uint32_t)end + received) & ~rel_mask_below(unit, first);]]
  HARM "each run of an ACK is read one packet too long: a lost packet counts as received")

plant(rel_complete_early
  LAYER rel KIND data
  FILE src/rel/rx.c
  FROM [[return msg && msg->end_known && msg->cum == msg->npkts;]]
  TO [[return msg && msg->end_known && msg->hi == msg->npkts;]]
  HARM "a receive completes once its last packet is there, whatever is missing before it")

plant(rel_reorder_round_trip
  LAYER rel KIND slow BY catalogue CASES "${SLOW_CASES}"
  FILE src/rel/tx.c
  FROM [[uint64_t base = u64_max(REL_REORDER_MIN_NS, smoothed / 16);]]
  TO [[uint64_t base = u64_max(REL_REORDER_MIN_NS, smoothed);]]
  HARM "a hole counts as lost only a round trip after it shows")

plant(rel_probe_gap_grows
  LAYER rel KIND slow BY catalogue CASES "${SLOW_CASES}"
  FILE src/rel/tx_timer.c
  FROM [[u64_min(2 * tx->probe_gap_ns, u64_max(rto, REL_PROBE_MAX_NS));]]
  TO [[4 * tx->probe_gap_ns;]]
  HARM "probes of a silent path grow rare without end: it is back long before we notice")

plant(rel_rto_tenfold
  LAYER rel KIND slow BY catalogue CASES "${SLOW_CASES}"
  FILE src/rel/rtt.c
  FROM [[scaled(rtt->variance_ns, 0.8)]]
  TO [[scaled(rtt->variance_ns, 8)]]
  HARM "timers wait for ten times the variance")

plant(rel_resend_lost_twice
  LAYER rel KIND slow
  FILE src/rel/tx.c
  FROM [[tx->lost_now -= (uint64_t)__builtin_popcountll(lost & ~covered);
	return was;]]
  TO [[tx->lost_now -= lost != 0;
	return was;]]
  HARM "the count of lost packets falls by words: nothing is ever all sent, no tail is probed for")

plant(rel_close_leaks
  LAYER rel KIND leak
  FILE src/rel/tx.c
  FROM [[alloc_free(&tx->alloc, msg->page);
	alloc_free(&tx->alloc, msg);
	for]]
  TO [[alloc_free(&tx->alloc, msg);
	for]]
  HARM "each write leaves its table of pages behind")

# ---- rx: slots, generations, bitmaps ----

plant(rx_claim_twice
  LAYER rx KIND memory
  FILE src/rx/rx.h COMPILE src/fabric/deliver.c
  FROM [[return want & ~had;]]
  TO [[return want;]]
  HARM "a duplicate is written again, over what the application made of the first")

plant(rx_key_unchecked
  LAYER rx KIND data
  FILE src/rx/rx.h COMPILE src/fabric/deliver.c
  FROM [[return atomic_load(&s->state) == (RX_BOUND | (key & t->key_mask));]]
  TO [[return (void)key, (void)t, (atomic_load(&s->state) & RX_BOUND) != 0;]]
  HARM "a late packet of the slot's last message lands in the next one's buffer")

plant(rx_end_one_early
  LAYER rx KIND data
  FILE src/rx/rx.h COMPILE src/fabric/deliver.c
  FROM [[rx_end_lower(s, past << 32 | last_len);]]
  TO [[rx_end_lower(s, (past > 1 && last_len < s->payload ? past - 1 : past) << 32 | last_len);]]
  HARM "a short last packet ends the message one packet too early")

plant(rx_last_chunk_early
  LAYER rx KIND data
  FILE src/rx/rx.h COMPILE src/fabric/deliver.c
  FROM [[now |= ~bits_low((unsigned int)left);]]
  TO [[now |= ~bits_low((unsigned int)(left ? left - 1 : 0));]]
  HARM "the last chunk's bit rises before its last packet is there")

# ---- sdk: grants, receives, control ----

plant(sdk_no_fence
  LAYER sdk KIND memory
  FILE src/sdk/recv.c
  FROM [[	fence(qp, recv->message);
	ready_take(]]
  TO [[	ready_take(]]
  HARM "a receive that ended early is written to by packets that come later")

plant(sdk_early_is_whole
  LAYER sdk KIND data
  FILE src/sdk/recv.c
  FROM [[return rx_end(slot, &npkts, &bytes) && all_are(slot, npkts, true);]]
  TO [[return rx_end(slot, &npkts, &bytes);]]
  HARM "a receive that ended early counts as whole: the sender hears of a success")

plant(sdk_abort_once
  LAYER sdk KIND hang
  FILE src/sdk/grant.c
  FROM [[		aborts_send(qp);
		sdk_repeat_again(&tx->abort, now);]]
  TO [[		aborts_send(qp);
		tx->abort.at_ns = UINT64_MAX;]]
  HARM "a cancel is said once: where that is lost the receiver waits for ever")

plant(sdk_grant_stale
  LAYER sdk KIND data
  FILE src/sdk/grant.c
  FROM [[		slot->send = NULL;
		slot->flags = 0;
		tx->base++;]]
  TO [[		slot->send = NULL;
		slot->flags &= SEND_GRANTED;
		tx->base++;]]
  HARM "a number takes the grant of the one before it in its slot: old length, old key")

plant(sdk_window_full
  LAYER sdk KIND memory
  FILE src/sdk/send.c
  FROM [[if (tx->slot && tx->next - tx->base >= qp->attr.messages)]]
  TO [[if (tx->slot && tx->next - tx->base > qp->attr.messages)]]
  HARM "one send too many is taken: it shares a slot with the oldest")

plant(sdk_replay_window
  LAYER sdk KIND hang
  FILE src/sdk/ctrl.c
  FROM [[for (uint64_t i = 1; i <= u64_min(step,]]
  TO [[for (uint64_t i = 1; i < u64_min(step,]]
  HARM "after 1,024 control datagrams the filter takes new ones for old ones")

plant(sdk_replay_twice
  LAYER sdk KIND twice
  FILE src/sdk/ctrl.c
  FROM [[	if (*word & bit)
		return false;]]
  TO [[	if (*word & bit)
		return true;]]
  HARM "a duplicated control datagram is heard twice")

plant(sdk_words_leak
  LAYER sdk KIND leak
  FILE src/sdk/recv.c
  FROM [[	sdk_words_put(qp->ctx, recv->words, recv->nwords);
	recv->words = NULL;
	recv->state = all]]
  TO [[	recv->words = NULL;
	recv->state = all]]
  HARM "each receive of more than 64 packets leaves its bitmaps behind")

# ---- conn: operations, closing, announcements ----

plant(conn_deadline_stays
  LAYER conn KIND twice
  FILE src/conn/op.c
  FROM [[	heap_remove(&conn->deadlines, &op->timer);
	op->send = NULL;]]
  TO [[	op->send = NULL;]]
  HARM "an operation that ended keeps its deadline, and ends again when that comes")

plant(conn_close_undrained
  LAYER conn KIND data
  FILE src/conn/close.c
  FROM [[if (conn->state == CONN_DRAIN && !conn->tx_used) {]]
  TO [[if (conn->state == CONN_DRAIN) {]]
  HARM "a close does not wait for the writes that are under way: they are lost")

plant(conn_write_said_once
  LAYER conn KIND hang
  FILE src/conn/announce.c
  FROM [[op->say_ns = now + gap;]]
  TO [[op->say_ns = now + gap ? UINT64_MAX : 0;]]
  HARM "WRITE is said once: where that is lost the receive never ends")

plant(conn_flight_twice
  LAYER conn KIND slow BY catalogue CASES "${SLOW_CASES}"
  FILE src/conn/send.c
  FROM [[double used = (double)rel_tx_inflight(&conn->tx, c) * ch->pkt_bytes;]]
  TO [[double used = (double)rel_tx_inflight(&conn->tx, c) * ch->pkt_bytes * 2;]]
  HARM "what is in flight counts twice: half of the window is never used")

plant(conn_early_told_as_done
  LAYER conn KIND data
  FILE src/conn/send.c
  FROM [[	write_end(op, info.remote_early ? -SDR_E_EARLY : 0);
	return true;]]
  TO [[	write_end(op, 0);
	return true;]]
  HARM "a write whose receiver gave it up is told as done")

# ---- codes: parity, what is decoded, what is told of it ----

plant(conn_parity_row
  LAYER conn KIND data BY catalogue CASES "drop_k+1_fresh"
  FILE src/conn/parity.c
  FROM [[err = codec_encode(&op->conn->codec, w, block, n, row, 1);]]
  TO [[err = codec_encode(&op->conn->codec, w, block, n, row - 1, 1);]]
  HARM "further parity has the bytes of another symbol: what is made of it is wrong")

plant(conn_parity_stale
  LAYER conn KIND data
  FILE src/conn/parity.c
  FROM [[		if (!err)
			op->encoded = block + n;]]
  TO [[		if (!err)
			op->encoded = block + n + 1;]]
  HARM "the parity of every other block is never made: memory as it was is sent")

plant(conn_decode_span
  LAYER conn KIND data
  FILE src/conn/decode.c
  FROM [[return op->code.span_start + code_layout_packet(]]
  TO [[return code_layout_packet(]]
  HARM "where only a message's end is coded, packets of its beginning are taken for the lost ones")

plant(conn_decode_last_long
  LAYER conn KIND memory
  FILE src/conn/codec.c
  FROM [[b.last_len = (uint32_t)u64_min(w->payload, w->length - last);]]
  TO [[b.last_len = (uint32_t)u64_min(w->payload, w->length - last + w->payload);]]
  HARM "a short last packet is read and made good as a full one: past the message's end")

plant(conn_coded_imm
  LAYER conn KIND data
  FILE src/conn/announce.c
  FROM [[		*imm = op->said_imm;
		return false;]]
  TO [[		*imm = all ? *imm : 0;
		return false;]]
  HARM "the immediate of a coded write goes with the packets that were lost")

plant(conn_parity_kept
  LAYER conn KIND leak
  FILE src/conn/pair.c
  FROM [[	op->parity_recv = NULL;
	room_put(op, &op->conn->rx_arena);]]
  TO [[	op->parity_recv = NULL;]]
  HARM "each receive leaves its memory for parity behind: writes are soon without")

# ---- fabric/udp's logic: what arrives ----

plant(deliver_unverified
  LAYER fabric KIND data
  FILE src/fabric/deliver.c
  FROM [[if (protect_open(&qp->key, pkt->bytes, pkt->len - pkt->absent)) {]]
  TO [[if (protect_open(&qp->key, pkt->bytes, pkt->len - pkt->absent) > 0) {]]
  HARM "the checksum's verdict is read with the wrong sign: damage is delivered")

plant(deliver_tail_full
  LAYER fabric KIND memory
  FILE src/fabric/deliver.c
  FROM [[memcpy(to, v->payload, v->data.length);]]
  TO [[memcpy(to, v->payload, slot->payload);]]
  HARM "a short last packet is copied as if it were full: past the buffer's end")

plant(deliver_run_length
  LAYER fabric KIND data
  FILE src/fabric/deliver.c
  FROM [[return b->offset == a->offset + payload;]]
  TO [[return b->offset >= a->offset + payload;]]
  HARM "packets after a gap are taken for a run without one: bytes land in the wrong place")

plant(deliver_age_stale
  LAYER fabric KIND slow BY catalogue CASES "${SLOW_CASES}"
  FILE src/fabric/deliver.c
  FROM [[		if (newest_ns)
			atomic_store_explicit(newest_ns, at_ns, memory_order_relaxed);]]
  TO [[		if (newest_ns && !(old & DELIVER_PSN_VALID))
			atomic_store_explicit(newest_ns, at_ns, memory_order_relaxed);]]
  HARM "the newest packet has the first one's time: round trips come out wrong")
