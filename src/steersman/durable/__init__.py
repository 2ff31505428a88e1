"""What makes a session durable: its lease, its stored turns, held calls, parking.

This room stands above `_session`. The factory gives it to the sessions whose inbox is in a store;
no other session loads it.
"""
