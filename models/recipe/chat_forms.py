"""How a conversation is written: as Qwen3 and as GLM-4.5 render it.

A document is a list of (text, mode) pieces. mode: 0 no loss, 1 loss on every token, 2 loss
on every token but the first (past assistant turns: their first token must not teach the
model to skip its think block). Sources: the chat templates of the two families.
"""


class QwenForm:
    """ChatML. The empty think block of thinking-off never carries a loss."""
    begin = ""
    end_of_text = "<|endoftext|>"

    def chat(self, turns, system, think):
        """turns: (user, answer) pairs; think: reasoning of the last turn, empty for off."""
        doc = []
        if system is not None:
            doc.append((f"<|im_start|>system\n{system}<|im_end|>\n", 0))
        for i, (user, reply) in enumerate(turns):
            doc.append((f"<|im_start|>user\n{user}<|im_end|>\n<|im_start|>assistant\n", 0))
            if i + 1 < len(turns):
                doc += [(reply + "<|im_end|>", 2), ("\n", 0)]
            elif think:
                doc.append((f"<think>\n{think}\n</think>\n\n{reply}<|im_end|>", 1))
            else:
                doc += [("<think>\n\n</think>\n\n", 0), (reply + "<|im_end|>", 1)]
        return doc


class GlmForm:
    """No end mark: a reply ends where the user's next turn would begin. With thinking off
    every question ends with /nothink."""
    begin = "[gMASK]<sop>"
    end_of_text = "<|endoftext|>"

    def chat(self, turns, system, think):
        """turns: (user, answer) pairs; think: reasoning of the last turn, empty for off."""
        switch = "" if think else "/nothink"
        doc = [(self.begin, 0)]
        if system is not None:
            doc.append((f"<|system|>\n{system}", 0))
        for i, (user, reply) in enumerate(turns):
            # The mark of the first turn; that of a later one ended the reply before it.
            doc.append((("<|user|>" if i == 0 else "") + f"\n{user}{switch}<|assistant|>", 0))
            if i + 1 == len(turns) and think:
                doc.append((f"\n<think>{think}</think>\n{reply}<|user|>", 1))
            else:
                doc += [("\n<think></think>", 0), (f"\n{reply}<|user|>", 1)]
        return doc
