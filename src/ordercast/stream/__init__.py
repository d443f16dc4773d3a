"""What an application reads: one ordered stream, taken as it comes, bounded. Asyncio."""
