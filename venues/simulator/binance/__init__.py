"""Binance spot: REST, and the order stream of its WebSocket API.

Source: https://developers.binance.com/docs/binance-spot-api-docs
"""
