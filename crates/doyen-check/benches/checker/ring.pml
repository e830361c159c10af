/* Chang-Roberts: N members in a ring, all have started, ids fall clockwise. The member at place p has the key N - p.
   A message is a key, or N more than a key if it announces the winner. One step is one delivery. */
#ifndef N
#define N 12
#endif

chan link[N] = [N] of { byte };
bool participates[N];
byte leader[N];
byte leaders;

active proctype ring()
{
    byte place, said;
    d_step {
        do
        :: place < N ->
            participates[place] = true;
            link[(place + 1) % N] ! (N - place);
            place++
        :: else -> break
        od;
        place = 0
    }
end:
    do
    :: atomic {
        if
        :: nempty(link[0]) -> place = 0
        :: nempty(link[1]) -> place = 1
        :: nempty(link[2]) -> place = 2
        :: nempty(link[3]) -> place = 3
        :: nempty(link[4]) -> place = 4
        :: nempty(link[5]) -> place = 5
        :: nempty(link[6]) -> place = 6
        :: nempty(link[7]) -> place = 7
        :: nempty(link[8]) -> place = 8
        :: nempty(link[9]) -> place = 9
        :: nempty(link[10]) -> place = 10
        :: nempty(link[11]) -> place = 11
        fi;
        link[place] ? said;
        if
        :: said > N ->
            if
            :: said - N != N - place ->
                leader[place] = said - N;
                participates[place] = false;
                link[(place + 1) % N] ! said
            :: else
            fi
        :: said <= N && said > N - place ->
            participates[place] = true;
            link[(place + 1) % N] ! said
        :: said == N - place ->
            leader[place] = said;
            participates[place] = false;
            leaders++;
            assert(leaders <= 1);
            link[(place + 1) % N] ! said + N
        :: said < N - place ->
            if
            :: !participates[place] ->
                participates[place] = true;
                link[(place + 1) % N] ! (N - place)
            :: else
            fi
        fi;
        place = 0;
        said = 0
       }
    od
}
