// models come next
